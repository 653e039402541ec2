// What a gateway does with the files of a CA of its own while somebody changes them.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { UsageError } from '../cli/command.ts'
import { openCertificates } from './gateway-files.ts'

test('a CA whose key is away is neither used nor replaced: the key may be on its way', () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-ca-'))
  const certificates = openCertificates({ tls: { directory } }, join(directory, 'gateway.yaml'), Date.now)
  try {
    const before = readFileSync(join(directory, 'ca.crt'), 'utf8')
    rmSync(join(directory, 'ca.key'))
    const prepare = () => certificates.prepare({ tls: { directory } })
    assert.throws(prepare, (error: unknown) => error instanceof UsageError && /ca\.key is not/.test(error.message))
    assert.equal(readFileSync(join(directory, 'ca.crt'), 'utf8'), before)
  } finally {
    certificates.stop()
    rmSync(directory, { recursive: true })
  }
})
