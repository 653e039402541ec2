// Names of kinds that differ from the kind split into words.

export const kindTitles: { readonly [kind: string]: readonly [one: string, many: string] } = {
  SharedSecret: ['global secret', 'Global secrets'],
  ProjectSecret: ['project secret', 'Project secrets'],
  OwnedAccessKey: ['access key', 'Access keys'],
}
