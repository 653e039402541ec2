// Writes a field selector for one value.

/** Escapes the characters that have a meaning in field selectors. */
export const selectField = (field: string, value: string): string => `${field}=${value.replace(/[\\,=]/g, '\\$&')}`
