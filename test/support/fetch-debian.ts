// Fetches a package from Debian's archive into a cache directory, without using the machine's own apt state.

import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { exec } from './exec.ts'

export type Wanted = {
  readonly name: string
  /** Further packages to unpack next to it. Packages that a release does not have are skipped. */
  readonly with?: readonly string[]
  /** Also unpacks the dependencies: those that this machine lacks, which needs the release of the machine, or all. */
  readonly dependencies?: 'missing' | 'all'
  /** Gets one directory `<name>-<version>` per release. */
  readonly cache: string
  /** Releases of the archive. From each inner list, the first one with the package is used. */
  readonly suites: readonly (readonly string[])[]
}

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** Leaves nothing behind if the machine has no apt, archive or network: the caller checks the result. */
export async function fetchDebian(wanted: Wanted): Promise<void> {
  await mkdir(wanted.cache, { recursive: true })
  const unlock = await lock(join(wanted.cache, `${wanted.name}.lock`))
  try {
    if ((await readdir(wanted.cache)).some(name => name.startsWith(`${wanted.name}-`))) return
    const site = await mirror()
    if (!site) return
    await Promise.all(wanted.suites.map(suites => fetchFirst(wanted, site, suites)))
  } finally {
    await unlock()
  }
}

/** The archive that this machine already uses, so that this repository names no host. */
async function mirror(): Promise<string | undefined> {
  const sites = (await archives()).filter(line => !/security|updates|backports/.test(line)).map(siteOf)
  return sites[0]
}

/** Sources of a release with its security updates, for privateApt. undefined if this machine does not use Debian's archive. */
export async function debianSources(release: string): Promise<string | undefined> {
  const site = await mirror()
  if (!site) return undefined
  const [security] = (await archives()).filter(line => line.includes('security')).map(siteOf)
  const lines = [`${site} ${release} main`, ...(security ? [`${security} ${release}-security main`] : [])]
  return lines.map(line => `deb [signed-by=${keyring}] ${line}\n`).join('')
}

async function archives(): Promise<string[]> {
  const { stdout } = await exec('apt-get', ['indextargets', '--format', '$(SITE) $(RELEASE)', 'Created-By: Packages'])
  return stdout.split('\n').filter(line => line)
}

const siteOf = (line: string) => line.split(' ')[0] ?? ''

async function fetchFirst(wanted: Wanted, site: string, suites: readonly string[]): Promise<void> {
  for (const suite of suites) if (await fetchOne(wanted, site, suite)) return
}

async function fetchOne(wanted: Wanted, site: string, suite: string): Promise<boolean> {
  const { name, cache, with: others = [], dependencies } = wanted
  const work = await mkdtemp(join(cache, 'apt-'))
  try {
    const sources = `deb [signed-by=${keyring}] ${site} ${suite} main\n`
    const conf = await privateApt({ work, sources, knowsMachine: dependencies === 'missing' })
    const run = (...args: string[]) => exec('apt-get', ['-q', '-c', conf, ...args], { cwd: work, timeout: 300_000 })
    if ((await run('update')).code !== 0) return false
    const install = ['install', '--download-only', '--no-install-recommends', '-y', name, ...others]
    if ((await (dependencies ? run(...install) : run('download', name))).code !== 0) return false
    if (!dependencies) for (const other of others) await run('download', other)
    const folder = dependencies ? join(work, 'cache/archives') : work
    // base-files first: it has the links from /lib to /usr/lib.
    const files = (await readdir(folder))
      .filter(entry => entry.endsWith('.deb'))
      .toSorted((a, b) => Number(b.startsWith('base-files_')) - Number(a.startsWith('base-files_')))
    const tree = join(work, 'tree')
    for (const file of files) if ((await exec('dpkg-deb', ['-x', join(folder, file), tree])).code !== 0) return false
    const [, version = suite] =
      files
        .find(file => file.startsWith(`${name}_`))
        ?.split('_')
        .map(decodeURIComponent) ?? []
    await rename(tree, join(cache, `${name}-${version}`))
    return true
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

type AptOptions = {
  readonly work: string
  readonly sources: string
  /** Dependencies that this machine has are not downloaded. */
  readonly knowsMachine?: boolean
  /** In the words of Debian, such as arm64. Default: that of this machine. */
  readonly architecture?: string
}

/** Returns the configuration file. Read after the machine's own configuration, so that proxies still apply. Its hooks, which clean up after docker builds, do not. */
export async function privateApt({ work, sources, knowsMachine = false, architecture }: AptOptions): Promise<string> {
  const list = join(work, 'sources.list')
  const conf = join(work, 'apt.conf')
  await mkdir(join(work, 'state/lists/partial'), { recursive: true })
  await mkdir(join(work, 'cache/archives/partial'), { recursive: true })
  await writeFile(join(work, 'status'), '')
  await writeFile(list, sources)
  await writeFile(
    conf,
    `Dir::Etc::SourceList "${list}";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "${join(work, 'state')}";
Dir::State::Status "${knowsMachine ? '/var/lib/dpkg/status' : join(work, 'status')}";
Dir::Cache "${join(work, 'cache')}";
Dir::Log "${work}";
${architecture ? `APT::Architecture "${architecture}";\nAPT::Architectures { "${architecture}"; };\n` : ''}Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "root";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
`,
  )
  return conf
}

/** One process at a time. Others wait, and take over if it dies. If two run at once, the rename is atomic. */
async function lock(file: string): Promise<() => Promise<void>> {
  for (;;) {
    try {
      const handle = await open(file, 'wx')
      await handle.writeFile(String(process.pid))
      await handle.close()
      return () => rm(file, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const holder = Number(await readFile(file, 'utf8').catch(() => ''))
    if (holder && !isAlive(holder)) await rm(file, { force: true })
    else await pause(200)
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
