/** The process that checks a trace that somebody sent. */
import { serveJobs } from '../workers/serve-jobs.ts'
import { lowerPriority, NICE_RUN } from './low-priority.ts'
import { traceJob } from './trace-job.ts'

lowerPriority(NICE_RUN)
serveJobs(traceJob)
