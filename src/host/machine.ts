// Interfaces to files, keychain and child processes, which tests replace.

export interface Files {
  /** Returns undefined if the file does not exist. */
  read(path: string): Promise<Uint8Array | undefined>
  /** Writes atomically with mode 0600 and creates missing directories with mode 0700. */
  write(path: string, data: string | Uint8Array): Promise<void>
  /** Creates a file in an existing directory, by default with mode 0600. Returns false if the path exists. */
  make(path: string, data: string | Uint8Array, mode?: number): Promise<boolean>
  /** Creates a directory with mode 0700 in an existing one. Returns false if the path exists. */
  makeDirectory(path: string): Promise<boolean>
  /** Removes an empty directory. Returns false if it is not empty. */
  removeDirectory(path: string): Promise<boolean>
  /** Removes a file, if it exists. */
  remove(path: string): Promise<void>
  /** Removes a directory recursively, if it exists. */
  removeAll(path: string): Promise<void>
  /** Runs `work` with the lock of the path. Other programs wait, and print `waiting` if that takes long. */
  locked<T>(path: string, work: () => Promise<T>, waiting?: string): Promise<T>
  /** Searches the PATH for a program. */
  find(program: string): Promise<string | undefined>
}

export interface Keychain {
  get(name: string): Promise<string | undefined>
  set(name: string, secret: string): Promise<void>
  remove(name: string): Promise<void>
}

export type StartOptions = {
  readonly env: { readonly [name: string]: string | undefined }
  /** Filters the output; without it the program inherits our streams. */
  readonly through?: { readonly out: OutputFilter; readonly err: OutputFilter }
}

/** Returns the output for a chunk. Called with undefined at the end, for output that was held back. */
export type OutputFilter = (chunk: Uint8Array | undefined) => Uint8Array

export interface Started {
  /** The exit code, or 128 plus the number of the signal. Rejects if the program could not be started. */
  readonly ended: Promise<number>
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
}

/** Starts a program and forwards signals to it until it exits. */
export type Start = (command: readonly string[], options: StartOptions) => Started
