// The parts of the machine that commands use: files, keychain, other programs. bin/ makes them, tests make others.

export interface Files {
  /** undefined: there is no such file. */
  read(path: string): Promise<Uint8Array | undefined>
  /** Whole or not at all, readable by its owner alone, in a directory that is its owner's too. */
  write(path: string, data: string | Uint8Array): Promise<void>
  /** A new file, readable by its owner alone, in a directory that is there; false: something of that name is. */
  make(path: string, data: string | Uint8Array): Promise<boolean>
  /** Gone afterwards, whether it was there or not. */
  remove(path: string): Promise<void>
  /** The same for a directory and all that is in it. */
  removeAll(path: string): Promise<void>
  /** One program at a time: others that want the same path wait. */
  locked<T>(path: string, work: () => Promise<T>): Promise<T>
  /** The program of that name, as a shell would find it. */
  find(program: string): Promise<string | undefined>
}

export interface Keychain {
  get(name: string): Promise<string | undefined>
  set(name: string, secret: string): Promise<void>
  remove(name: string): Promise<void>
}

export type StartOptions = {
  readonly env: { readonly [name: string]: string | undefined }
  /** What it prints goes through here first; absent: it has our own streams. */
  readonly through?: { readonly out: Through; readonly err: Through }
}

/** Given a chunk, what may be printed of it; given none at the end, what was held back. */
export type Through = (chunk: Uint8Array | undefined) => Uint8Array

export interface Started {
  /** Its exit code; 128 and the signal's number where a signal ended it. Rejects where it could not be started. */
  readonly ended: Promise<number>
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
}

/** Signals that come to this program go to the one started, until it has ended. */
export type Start = (command: readonly string[], options: StartOptions) => Started
