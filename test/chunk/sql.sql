-- Customers and what they bought.
CREATE TABLE customers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT UNIQUE,
  created TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer INTEGER REFERENCES customers(id),
  total NUMERIC(10, 2)
);

CREATE INDEX orders_by_customer ON orders (customer);

-- The best ten.
CREATE VIEW best_customers AS
SELECT c.id, c.name, SUM(o.total) AS total
FROM customers c
JOIN orders o ON o.customer = c.id
GROUP BY c.id, c.name
ORDER BY total DESC
LIMIT 10;

INSERT INTO customers (id, name, email) VALUES (1, 'Ada', 'ada@example.org');

SELECT name FROM best_customers WHERE total > 100;
