// `npm run release`: checks the sources, writes all artefacts with checksums into `release`, and tags the version.
// With --dry-run it does everything but the tag. docs/INSTALL.md describes the artefacts.

import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { writeArchive } from './archive.ts'
import { architectures, buildImage } from './oci-image.ts'
import { pack } from './pack.ts'
import { run } from './run.ts'
import { packageSbom } from './sbom.ts'
import { readSource, type Source } from './source.ts'

const { values } = parseArgs({
  options: {
    'dry-run': { type: 'boolean', default: false },
    'skip-tests': { type: 'boolean', default: false },
    'skip-images': { type: 'boolean', default: false },
    /** Architectures of the images. Default: all. */
    arch: { type: 'string', multiple: true, default: Object.keys(architectures) },
  },
})

const root = join(import.meta.dirname, '..')
const source = await readSource(root, process.env)
const tag = `v${source.version}`
const problems = await problemsOf(source)
if (problems.length) {
  console.error(`cannot release ${source.version}:\n${problems.map(one => `- ${one}`).join('\n')}`)
  process.exit(1)
}
if (!values['skip-tests']) await run('npm', ['test'], { cwd: root })
await writeArtefacts(source, join(root, 'release'))
if (values['dry-run']) console.log(`dry run: ${tag} was not tagged`)
else {
  await run('git', ['tag', '--annotate', tag, '--message', `${source.name} ${source.version}`], { cwd: root })
  console.log(`tagged ${tag}; publish it with: git push origin ${tag}`)
}

/** All reasons why these sources cannot become a release. */
async function problemsOf({ version }: Source): Promise<string[]> {
  const git = async (...args: string[]) => (await run('git', args, { cwd: root })).trim()
  const branch = await git('rev-parse', '--abbrev-ref', 'HEAD')
  const changes = await git('status', '--porcelain')
  const changelog = existsSync(join(root, 'CHANGELOG.md')) ? readFileSync(join(root, 'CHANGELOG.md'), 'utf8') : ''
  const heading = `## [${version}] - `
  const hasSection = changelog.split('\n').some(line => line.startsWith(heading) && isDay(line.slice(heading.length)))
  return [
    ...(branch === 'main' ? [] : [`the branch is ${branch}; release from main`]),
    ...(changes ? [`there are uncommitted changes; commit or remove them:\n${changes}`] : []),
    ...(hasSection ? [] : [`CHANGELOG.md has no section "${heading}YYYY-MM-DD"; add it`]),
    ...((await git('tag', '--list', tag)) ? [`the tag ${tag} exists; set a new version in package.json`] : []),
  ]
}

function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))
}

async function writeArtefacts(source: Source, directory: string): Promise<void> {
  const stem = join(directory, `${source.name}-${source.version}`)
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const tarball = await pack(source, directory)
  writeFileSync(`${stem}.cdx.json`, packageSbom(source))
  await writeDeploy(source, `${stem}-deploy.tar.gz`)
  for (const arch of values['skip-images'] ? [] : values.arch) {
    const image = `${stem}-image-${arch}`
    const digest = await buildImage({ source, arch, tarball, output: `${image}.tar`, sbom: `${image}.cdx.json` })
    console.log(`${basename(image)}.tar: ${digest}`)
  }
  const sums = readdirSync(directory)
    .toSorted()
    .map(
      name =>
        `${createHash('sha256')
          .update(readFileSync(join(directory, name)))
          .digest('hex')}  ${name}\n`,
    )
  writeFileSync(join(directory, 'SHA256SUMS'), sums.join(''))
  for (const name of readdirSync(directory).toSorted()) console.log(join('release', name))
}

/** The files of systemd and the manifests, in one directory with name and version. */
async function writeDeploy({ root: from, name, version, epoch }: Source, file: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'platform-deploy-'))
  try {
    const tree = join(work, 'tree')
    // The image has its own files inside.
    const isForImage = (path: string) => path === join(from, 'deploy/image')
    cpSync(join(from, 'deploy'), join(tree, `${name}-${version}-deploy`), {
      recursive: true,
      filter: path => !isForImage(path) && !path.endsWith('.test.ts'),
    })
    await writeArchive({ tree, file: join(work, 'deploy.tar'), epoch })
    writeFileSync(file, gzipSync(readFileSync(join(work, 'deploy.tar')), { level: 9 }))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
