/** A file with a secret, named by an environment variable and read once, at the start. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import type { EnvironmentVariable } from './env-variable.ts'
import { SettingsError } from './settings.ts'

/** Surrounding spaces are removed, so the file may be a little longer. */
const MAX_FILE_BYTES = 4_096

/** @throws SettingsError, one line that names the variable, without the content of the file */
export function readSecretFile(
  path: string,
  { name, range }: Pick<EnvironmentVariable<unknown>, 'name' | 'range'>,
): { readonly text: string; readonly mode: number } {
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(MAX_FILE_BYTES)
      const size = readSync(file, bytes, 0, MAX_FILE_BYTES, 0)
      return { text: bytes.toString('utf8', 0, size), mode: fstatSync(file).mode }
    } finally {
      closeSync(file)
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable'
    throw new SettingsError(name, path, `${range} (${code})`, { cause: error })
  }
}
