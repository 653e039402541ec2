// Formats the error of a failed patch for the tenant and for the operator.

export type Problem = {
  readonly index: number
  readonly path: string
  readonly message: string
  /** The expression that failed, if the patch has one. */
  readonly expression?: 'expression' | 'reverseExpression'
}

/**
 * Names the expression instead of quoting it, because it may contain a secret. Only the operator's text names its place in the
 * configuration. `setting`: the key of the patches below `sync.toHost`.
 */
export function problemTexts(
  { index, path, message, expression }: Problem,
  setting: string,
): {
  readonly message: string
  readonly logged: string
} {
  const text = `patch ${index} at ${path || '""'}: ${message}`
  const where = expression && `; see sync.toHost.${setting}.patches[${index}].${expression}`
  return { message: text, logged: `${text}${where ?? ''}` }
}
