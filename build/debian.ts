// Downloads packages of Debian and unpacks them without their install scripts, as the base of the image.

import { createHash } from 'node:crypto'
import { appendFileSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { debianSources, privateApt } from '../test/support/fetch-debian.ts'
import { run } from './run.ts'

export type DebianPackage = {
  readonly name: string
  readonly version: string
  readonly architecture: string
  readonly file: string
  readonly sha256: string
}

type Wanted = {
  readonly release: string
  readonly names: readonly string[]
  /** In the words of Debian. */
  readonly architecture: string
  /** Gets the files. If it has some, they are used as they are. */
  readonly directory: string
}

/** The newest version of each package, with security updates. apt verifies their signatures. */
export async function debianPackages({ release, names, architecture, directory }: Wanted): Promise<DebianPackage[]> {
  mkdirSync(directory, { recursive: true })
  if (!filesIn(directory).length) {
    const sources = await debianSources(release)
    if (!sources) throw new Error('cannot download packages: this machine has no apt with an archive of Debian')
    const work = join(directory, 'apt')
    const conf = await privateApt({ work, sources, architecture })
    await run('apt-get', ['-q', '-c', conf, 'update'], { cwd: work })
    await run('apt-get', ['-q', '-c', conf, 'download', ...names], { cwd: directory })
    rmSync(work, { recursive: true })
  }
  const packages = await Promise.all(filesIn(directory).map(readPackage))
  const missing = names.filter(name => !packages.some(one => one.name === name))
  if (missing.length || packages.length !== names.length)
    throw new Error(
      `${directory} must hold exactly these packages, once each: ${names.join(', ')}; missing: ${missing}`,
    )
  return packages
}

const filesIn = (directory: string) =>
  readdirSync(directory)
    .filter(name => name.endsWith('.deb'))
    .toSorted()
    .map(name => join(directory, name))

async function readPackage(file: string): Promise<DebianPackage> {
  const field = async (name: string) => (await run('dpkg-deb', ['--field', file, name])).trim()
  return {
    name: await field('Package'),
    version: await field('Version'),
    architecture: await field('Architecture'),
    file,
    sha256: createHash('sha256').update(readFileSync(file)).digest('hex'),
  }
}

/** Directories that no program of the image reads. Licenses in usr/share/doc stay. */
const unused = [
  ...[
    'usr/{bin,sbin}/*',
    'usr/{games,include,src}',
    'usr/lib/*/gconv',
    'usr/lib/valgrind',
    '{boot,home,media,mnt,opt,srv}',
  ],
  ...['usr/share/!(ca-certificates|common-licenses|doc)', 'usr/share/doc/*/!(copyright)'],
  ...['etc/!(os-release|ssl)', 'var/!(lib|run|tmp)', 'var/lib/!(dpkg)'],
]

/** Unpacks the packages. Scanners find them in var/lib/dpkg/status.d, as in other images without dpkg. */
export async function unpackDebian(packages: readonly DebianPackage[], tree: string): Promise<void> {
  const status = join(tree, 'var/lib/dpkg/status.d')
  // base-files first: it has the links from /lib to /usr/lib.
  for (const one of packages.toSorted((a, b) => rank(a) - rank(b))) {
    await run('dpkg-deb', ['--extract', one.file, tree])
    const control = await run('dpkg-deb', ['--field', one.file])
    mkdirSync(status, { recursive: true })
    writeFileSync(join(status, one.name), control.replace(/^(Package: .*\n)/, '$1Status: install ok installed\n'))
  }
  for (const pattern of unused)
    for (const path of globSync(pattern, { cwd: tree })) rmSync(join(tree, path), { recursive: true })
  bundleCertificates(tree)
}

const rank = ({ name }: DebianPackage) => (name === 'base-files' ? 0 : 1)

/** The work of the install script of ca-certificates. */
function bundleCertificates(tree: string): void {
  const bundle = join(tree, 'etc/ssl/certs/ca-certificates.crt')
  mkdirSync(join(tree, 'etc/ssl/certs'), { recursive: true })
  const files = globSync('usr/share/ca-certificates/mozilla/*.crt', { cwd: tree })
  writeFileSync(bundle, '')
  for (const file of files.toSorted((a, b) => (basename(a) < basename(b) ? -1 : 1)))
    appendFileSync(bundle, readFileSync(join(tree, file)))
}
