// Prepares a request URI for the audit log: known parameters stay, and everything that may be a secret becomes a hash.

import { type Hash, scrub } from './audit-redact.ts'

/** Parameters of the management API and of Kubernetes behind a gateway. Any other parameter may be a token. */
const knownParameters = new Set([
  ...['labelSelector', 'fieldSelector', 'limit', 'continue', 'resourceVersion', 'resourceVersionMatch'],
  ...['watch', 'allowWatchBookmarks', 'sendInitialEvents', 'timeoutSeconds', 'timeout', 'pretty', 'includeObject'],
  'omitData',
  ...['dryRun', 'fieldManager', 'fieldValidation', 'force'],
  ...[
    'gracePeriodSeconds',
    'propagationPolicy',
    'orphanDependents',
    'ignoreStoreReadErrorWithClusterBreakingPotential',
  ],
  ...['container', 'command', 'stdin', 'stdout', 'stderr', 'tty', 'ports', 'path', 'stream'],
  ...['follow', 'previous', 'sinceSeconds', 'sinceTime', 'tailLines', 'limitBytes', 'timestamps'],
  ...['insecureSkipTLSVerifyBackend', 'verbose', 'exclude', 'hash'],
])

export function cleanUri(uri: string, hash: Hash): string {
  const mark = uri.indexOf('?')
  if (mark === -1) return cleanPath(uri, hash)
  const parameters = uri.slice(mark + 1).split('&')
  return `${cleanPath(uri.slice(0, mark), hash)}?${parameters.map(one => cleanParameter(one, hash)).join('&')}`
}

const cleanPath = (path: string, hash: Hash): string =>
  path.includes('%')
    ? path
        .split('/')
        .map(part => cleanPart(part, hash))
        .join('/')
    : scrub(path, hash)

function cleanParameter(parameter: string, hash: Hash): string {
  const mark = parameter.indexOf('=')
  const name = mark === -1 ? parameter : parameter.slice(0, mark)
  const value = mark === -1 ? '' : parameter.slice(mark + 1)
  if (knownParameters.has(name)) return mark === -1 ? name : `${name}=${cleanPart(value, hash)}`
  if (value === '') return name === '' ? parameter : hash(decoded(name)) // a secret without a name
  return `${cleanPart(name, hash)}=${hash(decoded(value))}`
}

/** Decodes first: percent-encoding must not hide a key. */
function cleanPart(part: string, hash: Hash): string {
  const text = decoded(part)
  const clean = scrub(text, hash)
  return clean === text ? part : clean
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '))
  } catch {
    return part
  }
}
