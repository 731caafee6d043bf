/** The process of the twin. */
import { serveJobs } from '../workers/serve-jobs.ts'
import { givesWay, NICE_ASKED } from '../simulations/low-priority.ts'
import { twinJob } from './twin-job.ts'

givesWay(NICE_ASKED)
serveJobs(twinJob)
