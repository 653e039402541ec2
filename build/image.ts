// `npm run image`: builds the OCI image as an archive. docs/INSTALL.md describes the flags.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { buildImage } from './oci-image.ts'
import { pack } from './pack.ts'
import { readSource } from './source.ts'

const { values } = parseArgs({
  options: {
    output: { type: 'string' },
    arch: { type: 'string', default: process.arch },
    /** A package to use instead of a new one. */
    package: { type: 'string' },
    /** Directory of the packages of Debian, downloaded if it is empty. Keep it to build the same image again. */
    packages: { type: 'string' },
    sbom: { type: 'string' },
  },
})
const source = await readSource(join(import.meta.dirname, '..'), process.env)
const work = mkdtempSync(join(tmpdir(), 'platform-pack-'))
try {
  const tarball = values.package ? resolve(values.package) : await pack(source, work)
  const output = values.output ?? join('release', `${source.name}-${source.version}-image-${values.arch}.tar`)
  const { arch, packages, sbom } = values
  const digest = await buildImage({ source, arch, tarball, output, packages: packages && resolve(packages), sbom })
  console.log(`${output}: ${digest}`)
} finally {
  rmSync(work, { recursive: true, force: true })
}
