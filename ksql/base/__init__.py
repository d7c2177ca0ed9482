"""What every layer may use and nothing more."""
