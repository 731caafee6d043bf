/** What a failed read of a file means, in words. */
const MEANINGS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  ENOTDIR: 'a part of the path is not a folder',
}

/** Returns null for an error that does not come from the file system. */
export function fileFailure(error: unknown): string | null {
  const { code, message } = error as NodeJS.ErrnoException
  return code === undefined ? null : (MEANINGS[code] ?? message)
}
