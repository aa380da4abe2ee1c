"""What a design costs to buy and to run: bill of materials, power, failures, comparison."""
