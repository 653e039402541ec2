// Writes a file with a secret: whole or not at all, readable by its owner alone.

import { chmodSync, renameSync, writeFileSync } from 'node:fs'

export function writeSecret(file: string, text: string): void {
  const temporary = `${file}.${process.pid}.tmp`
  writeFileSync(temporary, text, { mode: 0o600, flush: true })
  chmodSync(temporary, 0o600)
  renameSync(temporary, file)
}
