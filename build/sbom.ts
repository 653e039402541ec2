// Software bills of materials in CycloneDX format, of the package and of the image. The same sources give the same bytes.
// `npm sbom --omit dev` is not used: it also omits dependencies that a development tool depends on, such as undici.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DebianPackage } from './debian.ts'
import { type Source, timeOf } from './source.ts'

type Component = {
  readonly 'bom-ref': string
  readonly type: string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly [field: string]: unknown
}
type Edge = { readonly ref: string; readonly dependsOn: readonly string[] }
type Part = { readonly component: Component; readonly dependsOn: readonly string[] }

/** An entry of package-lock.json. */
type Locked = {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly dependencies?: { readonly [name: string]: string }
  readonly optionalDependencies?: { readonly [name: string]: string }
}
type Lock = { readonly [path: string]: Locked }

/** The dependencies of the programs, as the lock file has them. */
export function packageSbom(source: Source): string {
  return write(source, { type: 'application', ...npmParts(source, () => true), debian: [] })
}

type ImageContent = { readonly arch: string; readonly release: string; readonly packages: readonly DebianPackage[] }

/** Everything in packageSbom but the Node of other architectures, and the packages of Debian. */
export function imageSbom(source: Source, { arch, release, packages }: ImageContent): string {
  const isOther = (name: string) => name.startsWith('node-linux-') && name !== `node-linux-${arch}`
  const debian = packages.map(one => debianPart(one, release))
  return write(source, { type: 'container', ...npmParts(source, name => !isOther(name)), debian })
}

function debianPart({ name, version, architecture, sha256 }: DebianPackage, release: string): Part {
  const id = `${encodeURIComponent(name)}@${encodeURIComponent(version)}`
  const purl = `pkg:deb/debian/${id}?arch=${architecture}&distro=${release}`
  const hashes = [{ alg: 'SHA-256', content: sha256 }]
  return { component: { 'bom-ref': purl, type: 'library', name, version, purl, hashes }, dependsOn: [] }
}

const prefix = 'node_modules/'
const purlOf = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`

type NpmParts = { readonly parts: readonly Part[]; readonly direct: readonly string[] }

function npmParts({ root }: Source, isWanted: (name: string) => boolean): NpmParts {
  const lock: Lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  const refs = new Map<string, string>()
  for (const [path, { version, dev }] of Object.entries(lock)) {
    const name = path.slice(path.lastIndexOf(prefix) + prefix.length)
    if (path && !dev && isWanted(name)) refs.set(path, purlOf(name, version))
  }
  const refsOf = (path: string, { dependencies, optionalDependencies }: Locked) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .map(name => refs.get(pathOf(lock, path, name) ?? ''))
      .filter(ref => ref !== undefined)
  // Two directories may have the same version.
  const parts = new Map<string, Part>()
  for (const [path, ref] of refs) {
    const locked = lock[path] as Locked
    parts.set(ref, {
      component: componentOf(path, locked, ref),
      dependsOn: [...new Set(refsOf(path, locked))].toSorted(),
    })
  }
  return { parts: [...parts.values()], direct: refsOf('', lock[''] as Locked) }
}

/** As Node resolves a name: in the package itself, then in the directories above. */
function pathOf(lock: Lock, from: string, name: string): string | undefined {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf(`/${prefix}`)))) {
    const path = `${base ? `${base}/` : ''}${prefix}${name}`
    if (lock[path]) return path
    if (!base) return undefined
  }
}

function componentOf(path: string, { version, license, integrity }: Locked, ref: string): Component {
  const name = path.slice(path.lastIndexOf(prefix) + prefix.length)
  const [algorithm, digest = ''] = (integrity ?? '').split('-')
  const content = Buffer.from(digest, 'base64').toString('hex')
  return {
    'bom-ref': ref,
    type: 'library',
    name,
    version,
    purl: ref,
    // Scanners know Node by its CPE, not by the package that contains it.
    ...(name.startsWith('node-linux-') && { cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*` }),
    ...(license && { licenses: [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }] }),
    ...(algorithm === 'sha512' && { hashes: [{ alg: 'SHA-512', content }] }),
  }
}

type Content = NpmParts & { readonly type: 'application' | 'container'; readonly debian: readonly Part[] }

function write(source: Source, { type, parts, direct, debian }: Content): string {
  const { name, version, license, description } = source
  const sorted = [...parts, ...debian].toSorted((a, b) => (a.component.purl < b.component.purl ? -1 : 1))
  const purl = purlOf(name, version)
  const component = {
    ...{ 'bom-ref': purl, type, name, version, description, purl },
    licenses: [{ license: { id: license } }],
  }
  const own = [...direct, ...debian.map(one => one.component['bom-ref'])]
  const dependencies: Edge[] = [
    { ref: purl, dependsOn: own.toSorted() },
    ...sorted.map(({ component: { 'bom-ref': ref }, dependsOn }) => ({ ref, dependsOn })),
  ]
  const bom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { timestamp: timeOf(source), component },
    components: sorted.map(one => one.component),
    dependencies,
  }
  const digest = createHash('sha256').update(JSON.stringify(bom)).digest('hex')
  const uuid = digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')
  return `${JSON.stringify({ ...bom, serialNumber: `urn:uuid:${uuid}` }, undefined, 2)}\n`
}
