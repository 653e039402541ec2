// The values that `platform run` passes to a program, as variables and as files.

export type SecretValues = {
  /** By variable. */
  readonly values: ReadonlyMap<string, Buffer>
  /** Secrets that only files need, by NAME[.KEY]: one value, or a whole secret by key. */
  readonly files: ReadonlyMap<string, Buffer | ReadonlyMap<string, Buffer>>
}

/** Every value by a name for messages. */
export function allValues({ values, files }: SecretValues): ReadonlyMap<string, Buffer> {
  const all = new Map(values)
  for (const [name, found] of files)
    if (Buffer.isBuffer(found)) all.set(name, found)
    else for (const [key, value] of found) all.set(`${name}.${key}`, value)
  return all
}
