/** The process that checks an uploaded trace. */
import { serveJobs } from '../../workers/serve-jobs.ts'
import { lowerPriority, NICE_RUN } from '../../workers/low-priority.ts'
import { traceJob } from './trace-job.ts'

lowerPriority(NICE_RUN)
serveJobs(traceJob)
