"""What is remembered beside the command topic; the only user of SQLAlchemy."""
