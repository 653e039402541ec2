// Converts values of settings from flags, variables and the configuration file. undefined: not such a value.

export const toNumber = (value: unknown) => (/^\d{1,9}$/.test(String(value)) ? Number(value) : undefined)
export const toBoolean = (value: unknown) =>
  value === true || value === 'true' ? true : value === false || value === 'false' ? false : undefined
export const toList = (value: unknown) =>
  typeof value === 'string'
    ? value
        .split(',')
        .map(one => one.trim())
        .filter(Boolean)
    : Array.isArray(value) && value.every(one => typeof one === 'string')
      ? value
      : undefined
