// The problem of a patch that could not be applied, as text.

export type Problem = {
  readonly index: number
  readonly path: string
  readonly message: string
  /** Which expression of the patch is to blame, where it has one. */
  readonly expression?: 'expression' | 'reverseExpression'
}

/** For the tenant, who need not know the configuration, and for whoever runs the syncer. What an expression says may be a secret: it is named. */
export function problemTexts({ index, path, message, expression }: Problem): {
  readonly message: string
  readonly logged: string
} {
  const said = `patch ${index} at ${path || '""'}: ${message}`
  const where = expression && `; see sync.toHost.endpoints.patches[${index}].${expression}`
  return { message: said, logged: `${said}${where ?? ''}` }
}
