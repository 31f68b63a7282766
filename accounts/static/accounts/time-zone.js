// Fills in the time zone of the browser. Without it, the site's zone decides the date of an invoice.

"use strict";

document.querySelector("[name=time_zone]").value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
