"""Terms of sellers: discounts, least orders, lead times."""
