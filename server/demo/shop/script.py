"""The statements of the shop, in the order in which they are sent."""

from __future__ import annotations

ORDERS = """\
CREATE STREAM orders (order_id STRING KEY)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'AVRO');"""

ORDER_BOOK = """\
CREATE TABLE order_book (order_id STRING PRIMARY KEY)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'AVRO');"""

CUSTOMERS = """\
CREATE TABLE customers (customer_id STRING PRIMARY KEY, country STRING)
  WITH (KAFKA_TOPIC = 'customers', VALUE_FORMAT = 'JSON');"""

PRODUCTS = """\
CREATE TABLE products (
    product_id STRING PRIMARY KEY, category STRING, price DECIMAL(10, 2))
  WITH (KAFKA_TOPIC = 'products', VALUE_FORMAT = 'JSON');"""

PAYMENTS = """\
CREATE STREAM payments (order_id STRING KEY, payment_id INT, method STRING)
  WITH (KAFKA_TOPIC = 'payments', VALUE_FORMAT = 'JSON');"""

CLICKS = """\
CREATE STREAM clicks (user_id STRING KEY, page STRING, stay_s INT)
  WITH (KAFKA_TOPIC = 'clicks', VALUE_FORMAT = 'JSON');"""

ENRICHED = """\
CREATE STREAM enriched WITH (VALUE_FORMAT = 'JSON') AS
  SELECT o.customer_id AS customer_id, o.order_id AS order_id, o.product_id AS product_id,
         o.amount AS amount, c.country AS country
  FROM orders o LEFT JOIN customers c ON o.customer_id = c.customer_id
  EMIT CHANGES;"""

ORDER_PAYMENTS = """\
CREATE STREAM order_payments WITH (VALUE_FORMAT = 'JSON') AS
  SELECT o.order_id AS order_id, o.amount AS amount, p.payment_id AS payment_id,
         p.method AS method
  FROM orders o LEFT JOIN payments p WITHIN 10 MINUTES GRACE PERIOD 10 MINUTES
    ON o.order_id = p.order_id
  EMIT CHANGES;"""

VISITS = """\
CREATE TABLE visits AS
  SELECT user_id, COUNT(*) AS clicks, SUM(stay_s) AS stay_s
  FROM clicks WINDOW SESSION (30 MINUTES, RETENTION 7 DAYS, GRACE PERIOD 10 MINUTES)
  GROUP BY user_id
  EMIT CHANGES;"""

REVENUE = """\
CREATE TABLE revenue AS
  SELECT country, COUNT(*) AS orders, SUM(amount) AS revenue
  FROM enriched WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 7 DAYS, GRACE PERIOD 10 MINUTES)
  WHERE country IS NOT NULL
  GROUP BY country
  EMIT FINAL;"""

PRODUCT_DAYS = """\
CREATE TABLE product_days WITH (VALUE_FORMAT = 'JSON') AS
  SELECT product_id, COUNT(*) AS orders, SUM(quantity) AS pieces, SUM(amount) AS revenue,
         TOPK(CAST(amount AS DOUBLE), 3) AS largest
  FROM orders WINDOW TUMBLING (SIZE 1 DAY, RETENTION 7 DAYS, GRACE PERIOD 10 MINUTES)
  GROUP BY product_id
  EMIT CHANGES;"""

ORDER_LINES = """\
CREATE TABLE order_lines WITH (VALUE_FORMAT = 'JSON') AS
  SELECT o.order_id AS order_id, p.product_id AS product_id, p.category AS category,
         o.quantity * p.price AS list_amount
  FROM order_book o JOIN products p ON o.product_id = p.product_id
  EMIT CHANGES;"""

CATEGORIES = """\
CREATE TABLE categories AS
  SELECT category, COUNT(*) AS orders, SUM(list_amount) AS list_amount
  FROM order_lines
  GROUP BY category
  EMIT CHANGES;"""

WITHIN_MS = GRACE_MS = 10 * 60_000
SESSION_GAP_MS = 30 * 60_000

SOURCES = (ORDERS, ORDER_BOOK, CUSTOMERS, PRODUCTS, PAYMENTS, CLICKS)
QUERIES = {
    "ENRICHED": ENRICHED,
    "ORDER_PAYMENTS": ORDER_PAYMENTS,
    "VISITS": VISITS,
    "REVENUE": REVENUE,
    "PRODUCT_DAYS": PRODUCT_DAYS,
    "ORDER_LINES": ORDER_LINES,
    "CATEGORIES": CATEGORIES,
}
PURPOSES = {
    "ENRICHED": "each order with its customer's country: a join on another key than the stream's",
    "ORDER_PAYMENTS": "each order with its payments, or with none: a join of streams",
    "VISITS": "clicks of a user that follow each other: sessions",
    "REVENUE": "hours of each country, emitted once: windows over the result of a join",
    "PRODUCT_DAYS": "sales of each product by day, with the three largest orders",
    "ORDER_LINES": "each order with its product as it is now: a join on a foreign key",
    "CATEGORIES": "sums over that table, with each change of a product taken back and added",
}
