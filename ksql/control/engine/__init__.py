"""One statement at a time: checked, ordered, carried out."""
