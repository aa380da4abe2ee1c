"""What the cockpit draws: shapes of one text, designs, points as plots."""
