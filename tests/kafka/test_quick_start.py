"""The quick start of ksqlDB, statement by statement as its text has them."""

from __future__ import annotations

from tests.kafka.servers import run_command
from tests.waits import await_true

DECLARED = """
CREATE STREAM riderLocations (profileId VARCHAR, latitude DOUBLE, longitude DOUBLE)
  WITH (kafka_topic='locations', value_format='json', partitions=1);
CREATE TABLE currentLocation AS
  SELECT profileId,
         LATEST_BY_OFFSET(latitude) AS la,
         LATEST_BY_OFFSET(longitude) AS lo
  FROM riderlocations
  GROUP BY profileId
  EMIT CHANGES;
CREATE TABLE ridersNearMountainView AS
  SELECT ROUND(GEO_DISTANCE(la, lo, 37.4133, -122.1162), -1) AS distanceInMiles,
         COLLECT_LIST(profileId) AS riders,
         COUNT(*) AS count
  FROM currentLocation
  GROUP BY ROUND(GEO_DISTANCE(la, lo, 37.4133, -122.1162), -1);
"""
WRITTEN = """
INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('c2309eec', 37.7877, -122.4205);
INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('18f4ea86', 37.3903, -122.0643);
INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('4ab5cbad', 37.3952, -122.0813);
INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('8b6eae59', 37.3944, -122.0813);
INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('4a7c7b41', 37.4049, -122.0822);
INSERT INTO riderLocations (profileId, latitude, longitude) VALUES ('4ddad000', 37.7857, -122.4011);
"""
PUSH = """-- Mountain View lat, long: 37.4133, -122.1162
SELECT * FROM riderLocations
  WHERE GEO_DISTANCE(latitude, longitude, 37.4133, -122.1162) <= 5 EMIT CHANGES;
"""
PULL = "SELECT * from ridersNearMountainView WHERE distanceInMiles <= 10;"


def test_the_quick_start_gives_what_its_text_shows(http):
    declared = run_command(http.url, stdin=DECLARED)
    assert (declared.returncode, declared.stderr) == (0, "")
    assert declared.stdout.count("Created query with ID") == 2

    with http.stream(PUSH, {}) as lines:
        next(lines)  # its first session waits; the rows are written in a second one
        written = run_command(http.url, stdin=WRITTEN)
        assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
        near = [next(lines) for _ in range(3)]
    assert near == [
        ["4ab5cbad", 37.3952, -122.0813],
        ["8b6eae59", 37.3944, -122.0813],
        ["4a7c7b41", 37.4049, -122.0822],
    ]
    shown = [[0.0, ["4ab5cbad", "8b6eae59", "4a7c7b41"], 3], [10.0, ["18f4ea86"], 1]]
    await_true("the riders near by", lambda: http.rows(PULL) == shown)
    answer = run_command(http.url, "-e", PULL)
    assert "| 0.0             | [4ab5cbad, 8b6eae59, 4a7c7b41] | 3     |" in answer.stdout
