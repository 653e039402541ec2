// Refuses versions of etcd with known bugs that lose data, lose events or return stale reads.

/** The first version of each minor release without known bugs of this kind. */
const fixed: ReadonlyMap<string, number> = new Map([
  ['3.5', 28],
  ['3.6', 9],
])

/** Undefined if the version is safe. */
export function versionProblem(version: string): string | undefined {
  const [, major, minor, patch] = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined) return `etcd has the unknown version ${JSON.stringify(version)}`
  const release = `${major}.${minor}`
  const first = fixed.get(release)
  if (first === undefined)
    return Number(major) === 3 && Number(minor) < 5
      ? `etcd ${version} returns stale reads and loses events. Upgrade it to 3.5.28, 3.6.9 or later`
      : undefined
  if (Number(patch) >= first) return undefined
  return `etcd ${version} has bugs that return stale reads or lose events. They are fixed in ${release}.${first}. Upgrade it, or use --etcd-allow-unsafe-version for a test`
}
