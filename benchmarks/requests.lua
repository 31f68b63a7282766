-- For wrk: sends the requests of a file, each thread its own part, and counts the successes.
-- Arguments: the file, a method, the status of a success, the number of threads. A line of the
-- file is the value of Cookie, a tab, a body, and perhaps a tab and a path that replaces the URL's.

local threads = {}

function setup(thread)
   table.insert(threads, thread)
   thread:set("number", #threads)
end

function init(args)
   local file, method = args[1], args[2]
   wanted, good, position, requests = tonumber(args[3]), 0, 0, {}
   local line_number = 0
   for line in io.lines(file) do
      line_number = line_number + 1
      if line_number % tonumber(args[4]) == number - 1 then
         local cookie, body, path = line:match("^(.-)\t([^\t]*)\t?(.*)$")
         local headers = {["Content-Type"] = "application/x-www-form-urlencoded"}
         for name, value in pairs(wrk.headers) do headers[name] = value end
         if cookie ~= "" then headers["Cookie"] = cookie end
         if body == "" then body = nil end
         if path == "" then path = nil end
         table.insert(requests, wrk.format(method, path, headers, body))
      end
   end
end

function request()
   position = position % #requests + 1
   return requests[position]
end

function response(status)
   if status == wanted then good = good + 1 end
end

function done(summary, latency)
   local all = 0
   for _, thread in ipairs(threads) do all = all + thread:get("good") end
   io.write(string.format(
      '\n{"seconds": %f, "done": %d, "good": %d, "median_ms": %f, "p99_ms": %f}\n',
      summary.duration / 1e6, summary.requests, all,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
