/** Detects input on stdin, which is not passed to a task, so that it is not dropped without a message. */
import { fstatSync } from 'node:fs'

/** @param onInput called once, when there is input that the task would have read */
export function noticeStdin(
  onInput: () => void,
  stdin: NodeJS.ReadStream & { readonly fd: 0 } = process.stdin,
): { end(): void } {
  const kind = kindOf(stdin.fd)
  if (kind === 'file') onInput()
  if (kind !== 'pipe') return { end: () => {} }
  const take = (): void => {
    end()
    onInput()
  }
  const end = (): void => {
    stdin.off('data', take)
    stdin.off('error', end)
    stdin.pause()
    // An open pipe must not keep the finished process alive.
    stdin.unref()
  }
  stdin.on('data', take)
  stdin.on('error', end)
  return { end }
}

/** `none`: a terminal, /dev/null, an empty file, a closed descriptor. */
function kindOf(fd: number): 'file' | 'pipe' | 'none' {
  try {
    const stat = fstatSync(fd)
    if (stat.isFile()) return stat.size > 0 ? 'file' : 'none'
    return stat.isFIFO() || stat.isSocket() ? 'pipe' : 'none'
  } catch {
    return 'none'
  }
}
