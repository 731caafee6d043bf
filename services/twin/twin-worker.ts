/** The process of the twin. */
import { serveJobs } from '../workers/serve-jobs.ts'
import { lowerPriority, NICE_ASKED } from '../workers/low-priority.ts'
import { twinJob } from './twin-job.ts'

lowerPriority(NICE_ASKED)
serveJobs(twinJob)
