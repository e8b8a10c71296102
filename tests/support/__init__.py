"""What the end-to-end tests, measurements and audits share. Standard library only."""
