// Issues client certificates with openssl, because the CA of the program signs only server certificates.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exec } from './exec.ts'

/** Writes NAME.crt and NAME.key. `ca`: the name of the CA's files in the same directory. */
export async function makeClientCertificate(directory: string, name: string, ca: string): Promise<void> {
  writeFileSync(join(directory, 'client.ext'), 'extendedKeyUsage=clientAuth\n')
  const run = async (...args: readonly string[]) => {
    const { code, stderr } = await exec('openssl', args, { cwd: directory })
    assert.equal(code, 0, stderr)
  }
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  await run('req', ...curve, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', '/CN=platform')
  const signer = ['-CA', `${ca}.crt`, '-CAkey', `${ca}.key`, '-CAcreateserial']
  await run(
    'x509',
    '-req',
    '-in',
    `${name}.csr`,
    ...signer,
    '-days',
    '1',
    '-extfile',
    'client.ext',
    '-out',
    `${name}.crt`,
  )
}
