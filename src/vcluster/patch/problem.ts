// Why a patch could not be applied, and how that is told. The plan and the preview say it.

export type Problem = {
  readonly index: number
  readonly path: string
  readonly message: string
  /** Of the patch that is to blame, where it has one: as it is in the configuration. */
  readonly expression?: string
}

const mostShown = 160

/** For the tenant, who need not know the configuration, and for whoever runs the syncer and wrote it. */
export function problemTexts({ index, path, message, expression }: Problem): {
  readonly message: string
  readonly logged: string
} {
  const said = `patch ${index} at ${path || '""'}: ${message}`
  const line = (expression ?? '').replace(/\s+/g, ' ').trim()
  const shown = line.length > mostShown ? `${line.slice(0, mostShown)}…` : line
  return { message: said, logged: shown ? `${said}; its expression: ${shown}` : said }
}
