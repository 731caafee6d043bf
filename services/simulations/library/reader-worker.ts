/** The process that reads scenarios. */
import { serveJobs } from '../../workers/serve-jobs.ts'
import { lowerPriority, NICE_ASKED } from '../../workers/low-priority.ts'
import { runReadJob } from './read-job.ts'

lowerPriority(NICE_ASKED)
serveJobs(runReadJob)
