"""The history of upgrades, in a database; the only user of SQLAlchemy."""
