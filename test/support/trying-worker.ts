/**
 * A worker process with the behaviour that a test needs: it answers, fails, crashes, uses all memory, or
 * works without end.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { serveJobs } from '../../services/workers/serve-jobs.ts'
import { lowerPriority, NICE_RUN } from '../../services/workers/low-priority.ts'

export type TryingJob =
  | { readonly kind: 'echo'; readonly value: unknown }
  | { readonly kind: 'refuse' | 'abort' | 'hoard' | 'nice' | 'work' }

lowerPriority(NICE_RUN)

serveJobs(async (job: TryingJob, onProgress): Promise<unknown> => {
  switch (job.kind) {
    case 'echo':
      return job.value
    case 'refuse':
      throw new RangeError('it may not be')
    case 'abort':
      return process.abort()
    case 'hoard':
      for (const hoard: number[][] = []; ;) hoard.push(new Array<number>(100_000).fill(hoard.length))
    case 'nice':
      return readdirSync('/proc/self/task').map(niceOf)
    case 'work':
      for (let done = 0; ; done++) onProgress(1 - 1 / (1 + done))
  }
})

/** The 19th field of `stat`; the second is a name in brackets that may contain blanks. */
function niceOf(thread: string): number {
  const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
}
