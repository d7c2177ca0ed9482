"""The statements of the demo, in the order in which they are sent."""

from __future__ import annotations

SETTINGS = {"auto.offset.reset": "earliest"}

FLIGHTS = """\
CREATE STREAM flights (
  tailnum STRING KEY, id INT, carrier STRING, flight INT,
  origin STRING, dest STRING, distance INT, dep_delay INT
) WITH (KAFKA_TOPIC = 'flights', PARTITIONS = 4, VALUE_FORMAT = 'JSON');"""

AIRLINES = """\
CREATE TABLE airlines (carrier STRING PRIMARY KEY, name STRING)
  WITH (KAFKA_TOPIC = 'airlines', PARTITIONS = 4, VALUE_FORMAT = 'JSON');"""

DELAYED = """\
CREATE STREAM delayed AS
  SELECT tailnum, id, carrier, flight, dest, dep_delay
  FROM flights
  WHERE dep_delay > 15
  EMIT CHANGES;"""

DEPARTURES = """\
CREATE STREAM departures AS
  SELECT f.carrier AS carrier, a.name AS airline, f.tailnum AS tailnum, f.id AS id,
         f.flight AS flight, f.origin + '-' + f.dest AS route, f.dep_delay AS dep_delay
  FROM flights f JOIN airlines a ON f.carrier = a.carrier
  EMIT CHANGES;"""

HOURLY = """\
CREATE TABLE hourly AS
  SELECT carrier, COUNT(*) AS departures, SUM(dep_delay) AS delay, AVG(dep_delay) AS average
  FROM flights WINDOW TUMBLING (SIZE 1 HOUR)
  GROUP BY carrier
  EMIT CHANGES;"""

CARRIERS = """\
CREATE TABLE carriers AS
  SELECT carrier, COUNT(*) AS departures, SUM(distance) AS miles, MAX(dep_delay) AS worst
  FROM flights
  GROUP BY carrier
  EMIT CHANGES;"""

DELAYED_MORE = """\
CREATE OR REPLACE STREAM delayed AS
  SELECT tailnum, id, carrier, flight, dest, dep_delay
  FROM flights
  WHERE dep_delay > 60
  EMIT CHANGES;"""

HOURLY_WORST = """\
CREATE OR REPLACE TABLE hourly AS
  SELECT carrier, COUNT(*) AS departures, SUM(dep_delay) AS delay, AVG(dep_delay) AS average,
         MAX(dep_delay) AS worst
  FROM flights WINDOW TUMBLING (SIZE 1 HOUR)
  GROUP BY carrier
  EMIT CHANGES;"""

DELAYED_ELSEWHERE = """\
CREATE OR REPLACE STREAM delayed AS
  SELECT tailnum, id, airline, flight, route, dep_delay
  FROM departures
  WHERE dep_delay > 60
  PARTITION BY tailnum
  EMIT CHANGES;"""

DELAY_BEFORE_MIN, DELAY_AFTER_MIN = 15, 60

SOURCES = (FLIGHTS, AIRLINES)
QUERIES = {
    "DELAYED": DELAYED,
    "DEPARTURES": DEPARTURES,
    "HOURLY": HOURLY,
    "CARRIERS": CARRIERS,
}
