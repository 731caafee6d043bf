/** The process of one run. */
import { serveJobs } from '../../workers/serve-jobs.ts'
import { lowerPriority, NICE_RUN } from '../../workers/low-priority.ts'
import { runJob } from './run-job.ts'

lowerPriority(NICE_RUN)
serveJobs(runJob)
