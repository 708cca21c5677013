"""Measures of calibration."""
