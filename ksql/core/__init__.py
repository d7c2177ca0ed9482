"""The foundation that every layer may use, and nothing more."""
