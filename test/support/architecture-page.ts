// Reads the import table and the named paths of docs/ARCHITECTURE.md.

/** The table with the columns "module" and "may import", as a record. */
export function importTable(markdown: string): Record<string, string> {
  const table: Record<string, string> = {}
  let columns: readonly string[] | undefined
  for (const line of markdown.split('\n')) {
    const cells = line.startsWith('|') ? line.split('|').slice(1, -1).map(plain) : []
    if (!cells.length) columns = undefined
    else if (cells.includes('module') && cells.includes('may import')) columns = cells
    else if (columns && !/^:?-+:?$/.test(cells[0] ?? ''))
      table[cells[columns.indexOf('module')] ?? ''] = cells[columns.indexOf('may import')] ?? ''
  }
  return table
}

const plain = (cell: string) => cell.replaceAll('`', '').trim()

/** Paths in backticks, relative links, and the files of a drawn tree. */
export function namedPaths(markdown: string): string[] {
  const blocks = [...markdown.matchAll(/^```[^\n]*\n([\s\S]*?)^```/gm)].map(match => match[1] ?? '')
  const prose = markdown.replace(/^```[\s\S]*?^```/gm, '')
  const quoted = [...prose.matchAll(/`([^`\s]+)`/g)].map(match => match[1] ?? '').filter(isPath)
  const links = [...prose.matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)].map(match => match[1] ?? '')
  return [...new Set([...quoted, ...links, ...blocks.flatMap(pathsInTree)])]
}

/** module/file.ts, dir/sub/, Name.md: text that is not a URL, a glob or a type. */
function isPath(text: string): boolean {
  return /^(?!\/)[\w.-]+(\/[\w.-]+)*\/?$/.test(text) && (/\.(ts|js|md|json)$/.test(text) || /^[\w.-]+\/$/.test(text))
}

/** A tree: a line that begins with a directory opens it at its indentation. Files on that line and below belong to it. */
function pathsInTree(block: string): string[] {
  if (!/^\w+\/\s*$/m.test(block.split('\n')[0] ?? '')) return []
  const open: { readonly indent: number; readonly path: string }[] = []
  const paths: string[] = []
  for (const line of block.split('\n')) {
    const [, space = '', directory] = /^(\s*)([\w.-]+\/)?/.exec(line) ?? []
    if (directory) {
      while ((open.at(-1)?.indent ?? -1) >= space.length) open.pop()
      open.push({ indent: space.length, path: `${open.at(-1)?.path ?? ''}${directory}` })
      paths.push(open.at(-1)?.path as string)
    }
    const rest = line.slice(space.length + (directory?.length ?? 0))
    for (const [name] of rest.matchAll(/(?<![\w/.-])[\w-]+(\.[\w-]+)*\.(ts|js|md|json)\b/g))
      paths.push(`${open.at(-1)?.path ?? ''}${name}`)
  }
  return paths
}
