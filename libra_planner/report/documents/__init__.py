"""Procurement reports: the same content as HTML, workbook, CSV and Markdown."""
