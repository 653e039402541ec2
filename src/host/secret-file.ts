// Writes a secret file atomically with mode 0600.

import { chmodSync, renameSync, writeFileSync } from 'node:fs'

export function writeSecret(file: string, text: string): void {
  const temporary = `${file}.${process.pid}.tmp`
  writeFileSync(temporary, text, { mode: 0o600, flush: true })
  chmodSync(temporary, 0o600)
  renameSync(temporary, file)
}
