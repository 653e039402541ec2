// Defines the error of an apply that sets fields of other managers.

import type { Owner } from './managers.ts'

/** A field and its owner. */
export type FieldConflict = Omit<Owner, 'fields' | 'entry'> & { readonly path: string }

export class ApplyConflict extends Error {
  readonly conflicts: readonly FieldConflict[]
  constructor(conflicts: readonly FieldConflict[]) {
    super(messageFor(conflicts))
    this.name = 'ApplyConflict'
    this.conflicts = conflicts
  }
}

export type ConflictCause = {
  readonly reason: 'FieldManagerConflict'
  readonly message: string
  readonly field: string
}

/** The message and causes of the 409 Status. */
export function applyConflictStatus(error: ApplyConflict): {
  readonly message: string
  readonly causes: readonly ConflictCause[]
} {
  const causes = error.conflicts.map(
    conflict =>
      ({ reason: 'FieldManagerConflict', message: `conflict with ${nameOf(conflict)}`, field: conflict.path }) as const,
  )
  return { message: error.message, causes }
}

function messageFor(conflicts: readonly FieldConflict[]): string {
  const [first] = conflicts
  if (first !== undefined && conflicts.length === 1) {
    return `Apply failed with 1 conflict: conflict with ${nameOf(first)}: ${first.path}`
  }
  const byOwner = Map.groupBy(conflicts, nameOf)
  const lines = [...byOwner].flatMap(([name, theirs]) => [
    `conflicts with ${name}:`,
    ...theirs.map(({ path }) => `- ${path}`),
  ])
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`
}

function nameOf(conflict: FieldConflict): string {
  const subresource = conflict.subresource === '' ? '' : ` with subresource ${JSON.stringify(conflict.subresource)}`
  const version = conflict.operation === 'Update' ? ` using ${conflict.apiVersion}` : ''
  return `${JSON.stringify(conflict.manager)}${subresource}${version}`
}
