// Words about the fields of every object.

/** Names of fields that are acronyms. */
export const isAcronym = (name: string): boolean => /^(?:ttl|url|uid|ip|dns)$/.test(name)

export const fieldText = {
  name: 'Name of the object.',
  namespace: 'Namespace of the object.',
  labels: 'Labels, for selectors.',
  annotations: 'Further data about the object.',
  notAnObject: 'the document must be an object',
} as const
