// Builds the OCI image: packages of Debian, Node, and the package with its dependencies, in one layer each.

import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type SpecialDirectory, writeArchive } from './archive.ts'
import { debianPackages, unpackDebian } from './debian.ts'
import { run } from './run.ts'
import { imageSbom } from './sbom.ts'
import { type Source, timeOf } from './source.ts'
import { findUmoci } from './umoci.ts'

const release = 'trixie'
const names = ['base-files', 'ca-certificates', 'gcc-14-base', 'libc6', 'libgcc-s1', 'libstdc++6']
/** Names of architectures in Node, and in Debian and OCI. */
export const architectures: { readonly [arch: string]: string } = { x64: 'amd64', arm64: 'arm64' }
const user = 65532
const special: readonly SpecialDirectory[] = [
  { path: 'data', owner: user, mode: '0700' },
  { path: 'tmp', owner: 0, mode: '1777' },
  { path: 'var/tmp', owner: 0, mode: '1777' },
]

export type ImageOptions = {
  readonly source: Source
  readonly arch: string
  /** The package as `npm pack` writes it. */
  readonly tarball: string
  /** Archive with the image, and its bill of materials. */
  readonly output: string
  readonly sbom?: string | undefined
  /** Directory with the packages of Debian; downloaded if it is empty. */
  readonly packages?: string | undefined
}

/** Returns the digest of the image. */
export async function buildImage(options: ImageOptions): Promise<string> {
  const { source, arch, output, sbom } = options
  const architecture = architectures[arch]
  if (!architecture) throw new Error(`--arch: "${arch}" must be ${Object.keys(architectures).join(' or ')}`)
  const work = mkdtempSync(join(tmpdir(), 'platform-image-'))
  try {
    const directory = options.packages ?? join(work, 'packages')
    const packages = await debianPackages({ release, names, architecture, directory })
    const trees = ['debian', 'node', 'platform'].map(name => join(work, name))
    const [debian = '', node = '', platform = ''] = trees
    for (const tree of trees) mkdirSync(tree)
    await unpackDebian(packages, debian)
    cpSync(join(source.root, 'deploy/image/etc'), join(debian, 'etc'), { recursive: true })
    for (const { path } of special) mkdirSync(join(debian, path), { recursive: true })
    await unpackProgram(options, platform, node)
    const layout = join(work, 'layout')
    await assemble({ source, architecture, layout, trees })
    mkdirSync(dirname(output), { recursive: true })
    await writeArchive({ tree: layout, file: output, epoch: source.epoch })
    if (sbom) writeFileSync(sbom, imageSbom(source, { arch, release, packages }))
    return JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests[0].digest
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Installs exactly the versions of the lock file. Node gets a layer of its own, because it is large and rarely changes. */
async function unpackProgram({ source, arch, tarball }: ImageOptions, tree: string, nodeTree: string): Promise<void> {
  const target = join(tree, 'opt/platform')
  const bin = join(tree, 'usr/local/bin')
  for (const path of [target, bin, join(nodeTree, 'usr/local/bin')]) mkdirSync(path, { recursive: true })
  await run('tar', ['--extract', '--file', tarball, '--directory', target, '--strip-components=1'])
  cpSync(join(source.root, 'package-lock.json'), join(target, 'package-lock.json'))
  const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await run('npm', ['ci', ...flags, '--os=linux', `--cpu=${arch}`], { cwd: target })
  const modules = join(target, 'node_modules')
  renameSync(join(modules, `node-linux-${arch}/bin/node`), join(nodeTree, 'usr/local/bin/node'))
  for (const name of readdirSync(modules))
    if (name.startsWith('.') || name.startsWith('node-linux-')) rmSync(join(modules, name), { recursive: true })
  rmSync(join(target, 'package-lock.json'))
  // The image has neither a shell nor `env`.
  const launcher = join(target, 'bin/platform.js')
  writeFileSync(launcher, readFileSync(launcher, 'utf8').replace(/^#!.*/, '#!/usr/local/bin/node'), { mode: 0o755 })
  symlinkSync('/opt/platform/bin/platform.js', join(bin, 'platform'))
}

type Assembly = {
  readonly source: Source
  readonly architecture: string
  readonly layout: string
  readonly trees: readonly string[]
}

async function assemble({ source, architecture, layout, trees }: Assembly): Promise<void> {
  const umoci = await findUmoci()
  const image = ['--image', `${layout}:${source.version}`]
  const created = timeOf(source)
  await run(umoci, ['init', '--layout', layout])
  await run(umoci, ['new', ...image])
  for (const tree of trees) {
    const file = `${tree}.tar`
    const isBase = tree === trees[0]
    await writeArchive({ tree, file, epoch: source.epoch, ...(isBase && { special }) })
    const history = ['--history.created', created, '--history.created_by', `npm run image: ${tree.split('/').at(-1)}`]
    await run(umoci, ['raw', 'add-layer', ...image, ...history, file])
    rmSync(file)
    rmSync(tree, { recursive: true })
  }
  await run(umoci, ['config', ...image, '--no-history', ...configOf(source, architecture, created)])
  await run(umoci, ['gc', '--layout', layout])
  nameImage(join(layout, 'index.json'), source.version)
}

/** Engines that load the archive name the image by this annotation. */
function nameImage(file: string, version: string): void {
  const index = JSON.parse(readFileSync(file, 'utf8'))
  index.manifests[0].annotations['io.containerd.image.name'] = `docker.io/library/platform:${version}`
  writeFileSync(file, JSON.stringify(index))
}

function configOf(source: Source, architecture: string, created: string): string[] {
  const each = (flag: string, values: readonly string[]) => values.flatMap(value => [flag, value])
  const labels = {
    title: 'platform',
    description: source.description,
    version: source.version,
    licenses: source.license,
    created,
    ...(source.commit && { revision: source.commit }),
  }
  return [
    ...['--created', created, '--architecture', architecture, '--os', 'linux'],
    ...['--config.user', `${user}:${user}`, '--config.workingdir', '/data', '--config.volume', '/data'],
    ...each('--config.env', [
      'PATH=/usr/local/bin',
      'HOME=/data',
      // Not a flag of `serve`: `backup` and other commands in the image need it, too.
      'PLATFORM_DATA=/data',
      // Other containers and the ports of the host do not reach loopback.
      'PLATFORM_HTTPS=0.0.0.0:8443',
      'PLATFORM_HTTP=off',
    ]),
    ...each('--config.exposedports', ['8443/tcp']),
    ...['--config.entrypoint', 'platform', '--config.cmd', 'serve'],
    ...each(
      '--config.label',
      Object.entries(labels).map(([name, value]) => `org.opencontainers.image.${name}=${value}`),
    ),
  ]
}
