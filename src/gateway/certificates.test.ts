// The files of a gateway's own CA while another program changes them.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { UsageError } from '../host/command.ts'
import { makeAuthority } from '../serving/certificate.ts'
import { openCertificates } from './certificates.ts'

function open(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'platform-ca-'))
  const certificates = openCertificates({ tls: { directory } }, join(directory, 'gateway.yaml'), Date.now)
  t.after(() => {
    certificates.stop()
    rmSync(directory, { recursive: true })
  })
  const at = (name: string) => join(directory, name)
  return {
    certificates,
    prepare: () => certificates.prepare({ tls: { directory } }),
    read: (name: string) => readFileSync(at(name), 'utf8'),
    write: (name: string, text: string) => writeFileSync(at(name), text),
    remove: (name: string) => rmSync(at(name)),
  }
}
const says = (words: RegExp) => (error: unknown) => error instanceof UsageError && words.test(error.message)

for (const [there, away] of [
  ['ca.crt', 'ca.key'],
  ['ca.key', 'ca.crt'],
] as const)
  test(`a CA without its ${away} is neither used nor replaced, because the file may still appear`, t => {
    const { prepare, read, remove } = open(t)
    const before = read(there)
    remove(away)
    assert.throws(
      prepare,
      says(new RegExp(`${away}: there is no such file.*only one of ca.crt and ca.key exists`, 's')),
    )
    assert.equal(read(there), before)
  })

for (const [first, second] of [
  ['ca.crt', 'ca.key'],
  ['ca.key', 'ca.crt'],
] as const)
  test(`a CA whose ${first} was replaced before its ${second} signs nothing; both are used once they match`, t => {
    const { certificates, prepare, write } = open(t)
    const made = makeAuthority(Date.now())
    const next = { 'ca.crt': made.certificate, 'ca.key': made.key }
    const before = certificates.view().current
    write(first, next[first])
    assert.throws(prepare, says(/ca\.crt and .*ca\.key do not match/))
    assert.equal(certificates.view().current, before)
    write(second, next[second])
    prepare()?.use()
    const shown = new X509Certificate(certificates.view().current.certificate)
    assert.ok(shown.verify(new X509Certificate(made.certificate).publicKey))
  })

test('an invalid certificate or key is reported with the name of its file', t => {
  const { prepare, write } = open(t)
  write('ca.crt', 'hello')
  write('ca.key', 'hello')
  assert.throws(
    prepare,
    says(/ca\.crt does not contain a PEM certificate.*\n?.*ca\.key does not contain a usable key/s),
  )
})
