/** The worker process of `sim fuzz`. */
import { runFuzzTask } from './fuzz-run.ts'
import { serveJobs } from '../workers/serve-jobs.ts'

serveJobs(runFuzzTask)
