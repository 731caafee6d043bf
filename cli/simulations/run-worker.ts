/** The process of one run. */
import { serveJobs } from '../workers/serve-jobs.ts'
import { givesWay, NICE_RUN } from './low-priority.ts'
import { runJob } from './run-job.ts'

givesWay(NICE_RUN)
serveJobs(runJob)
